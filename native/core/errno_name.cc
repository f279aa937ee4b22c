#include "errno_name.h"

#include <cerrno>
#include <utility>

namespace allstop::core {

const char* ErrnoName(int number) {
  static constexpr std::pair<int, const char*> kNames[] = {
      {EPERM, "EPERM"},
      {ENOENT, "ENOENT"},
      {ESRCH, "ESRCH"},
      {EINTR, "EINTR"},
      {EIO, "EIO"},
      {ENXIO, "ENXIO"},
      {E2BIG, "E2BIG"},
      {ENOEXEC, "ENOEXEC"},
      {EBADF, "EBADF"},
      {ECHILD, "ECHILD"},
      {EAGAIN, "EAGAIN"},
      {ENOMEM, "ENOMEM"},
      {EACCES, "EACCES"},
      {EFAULT, "EFAULT"},
      {EBUSY, "EBUSY"},
      {EEXIST, "EEXIST"},
      {EXDEV, "EXDEV"},
      {ENODEV, "ENODEV"},
      {ENOTDIR, "ENOTDIR"},
      {EISDIR, "EISDIR"},
      {EINVAL, "EINVAL"},
      {ENFILE, "ENFILE"},
      {EMFILE, "EMFILE"},
      {ENOTTY, "ENOTTY"},
      {ETXTBSY, "ETXTBSY"},
      {EFBIG, "EFBIG"},
      {ENOSPC, "ENOSPC"},
      {ESPIPE, "ESPIPE"},
      {EROFS, "EROFS"},
      {EMLINK, "EMLINK"},
      {EPIPE, "EPIPE"},
      {EDOM, "EDOM"},
      {ERANGE, "ERANGE"},
      {EDEADLK, "EDEADLK"},
      {ENAMETOOLONG, "ENAMETOOLONG"},
      {ENOLCK, "ENOLCK"},
      {ENOSYS, "ENOSYS"},
      {ENOTEMPTY, "ENOTEMPTY"},
      {ELOOP, "ELOOP"},
      {EILSEQ, "EILSEQ"},
      {EOVERFLOW, "EOVERFLOW"},
      {ENOTSOCK, "ENOTSOCK"},
      {EDESTADDRREQ, "EDESTADDRREQ"},
      {EMSGSIZE, "EMSGSIZE"},
      {EPROTOTYPE, "EPROTOTYPE"},
      {ENOPROTOOPT, "ENOPROTOOPT"},
      {EPROTONOSUPPORT, "EPROTONOSUPPORT"},
      {EOPNOTSUPP, "EOPNOTSUPP"},
      {EAFNOSUPPORT, "EAFNOSUPPORT"},
      {EADDRINUSE, "EADDRINUSE"},
      {EADDRNOTAVAIL, "EADDRNOTAVAIL"},
      {ENETDOWN, "ENETDOWN"},
      {ENETUNREACH, "ENETUNREACH"},
      {ENETRESET, "ENETRESET"},
      {ECONNABORTED, "ECONNABORTED"},
      {ECONNRESET, "ECONNRESET"},
      {ENOBUFS, "ENOBUFS"},
      {EISCONN, "EISCONN"},
      {ENOTCONN, "ENOTCONN"},
      {ETIMEDOUT, "ETIMEDOUT"},
      {ECONNREFUSED, "ECONNREFUSED"},
      {EHOSTUNREACH, "EHOSTUNREACH"},
      {EALREADY, "EALREADY"},
      {EINPROGRESS, "EINPROGRESS"},
      {EPROTO, "EPROTO"},
      {ECANCELED, "ECANCELED"},
      {EBADMSG, "EBADMSG"},
#ifdef EDQUOT
      {EDQUOT, "EDQUOT"},
#endif
#ifdef EHOSTDOWN
      {EHOSTDOWN, "EHOSTDOWN"},
#endif
#ifdef EIDRM
      {EIDRM, "EIDRM"},
#endif
#ifdef EMULTIHOP
      {EMULTIHOP, "EMULTIHOP"},
#endif
#ifdef ENODATA
      {ENODATA, "ENODATA"},
#endif
#ifdef ENOLINK
      {ENOLINK, "ENOLINK"},
#endif
#ifdef ENOMSG
      {ENOMSG, "ENOMSG"},
#endif
#ifdef ENOSR
      {ENOSR, "ENOSR"},
#endif
#ifdef ENOSTR
      {ENOSTR, "ENOSTR"},
#endif
#ifdef ENOTSUP
      {ENOTSUP, "ENOTSUP"},
#endif
#ifdef EREMOTEIO
      {EREMOTEIO, "EREMOTEIO"},
#endif
#ifdef ESHUTDOWN
      {ESHUTDOWN, "ESHUTDOWN"},
#endif
#ifdef ESOCKTNOSUPPORT
      {ESOCKTNOSUPPORT, "ESOCKTNOSUPPORT"},
#endif
#ifdef ESTALE
      {ESTALE, "ESTALE"},
#endif
#ifdef ETIME
      {ETIME, "ETIME"},
#endif
#ifdef EUNATCH
      {EUNATCH, "EUNATCH"},
#endif
  };
  for (const auto& [errno_of, name] : kNames) {
    if (errno_of == number) return name;
  }
  return "";
}

}  // namespace allstop::core
