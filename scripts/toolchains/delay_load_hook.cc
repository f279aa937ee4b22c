// The addon imports Node's functions from "node.exe". This hook answers with the
// program that is running, whatever its name is (electron.exe, or one of the user's),
// when the first of them is called. node-gyp and cmake-js have the same for MSVC.
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
