// The addon imports Node's functions from "node.exe", which Windows loads at the first call. This
// hook returns the running program instead, whatever its name is (electron.exe, or a program of
// the user). node-gyp and cmake-js have the same hook for MSVC.
#include <windows.h>  // before delayimp.h, which needs it
//
#include <delayimp.h>
#include <string.h>

static FARPROC WINAPI RunningProgram(unsigned event, PDelayLoadInfo info) {
  if (event != dliNotePreLoadLibrary || _stricmp(info->szDll, "node.exe") != 0) return nullptr;
  const HMODULE shared = GetModuleHandleA("libnode.dll");  // Node built as a library
  return reinterpret_cast<FARPROC>(shared != nullptr ? shared : GetModuleHandleA(nullptr));
}

extern "C" {
PfnDliHook __pfnDliNotifyHook2 = RunningProgram;
}
