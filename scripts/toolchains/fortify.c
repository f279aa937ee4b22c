/* Debian compiles its static libc++ and libunwind with _FORTIFY_SOURCE, so they call checked
 * variants of these functions, which musl does not have. This file defines the variants, hidden
 * inside the musl binaries. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int __vfprintf_chk(FILE *file, int flag, const char *format, va_list arguments) {
  (void)flag;
  return vfprintf(file, format, arguments);
}

int __fprintf_chk(FILE *file, int flag, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  const int written = __vfprintf_chk(file, flag, format, arguments);
  va_end(arguments);
  return written;
}

void *__memmove_chk(void *to, const void *from, size_t size, size_t room) {
  if (size > room) abort();
  return memmove(to, from, size);
}
