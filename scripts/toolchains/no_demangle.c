/* The C++ library's handler for uncaught exceptions would print the name of the exception's type
 * demangled, for which it links a demangler into every binary: a sixth of its bytes. This function
 * takes the place of the demangler's, and the handler prints the mangled name (`c++filt` reads it).
 * It is hidden inside the binary, so other libraries keep their own. */
#include <stddef.h>

char *__cxa_demangle(const char *name, char *buffer, size_t *length, int *status);

char *__cxa_demangle(const char *name, char *buffer, size_t *length, int *status) {
  (void)name;
  (void)buffer;
  (void)length;
  if (status != NULL) *status = -2; /* not a valid mangled name */
  return NULL;
}
