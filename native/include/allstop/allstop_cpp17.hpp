/// @file allstop_cpp17.hpp
/// Says in one line what is wrong if the C++ headers are compiled as an older C++ than they need;
/// and what each of them may need.
/// Part of allstop.hpp: each C++ header includes it before its own code.
#ifndef ALLSTOP_ALLSTOP_CPP17_HPP_
#define ALLSTOP_ALLSTOP_CPP17_HPP_

#if defined(_MSVC_LANG) /* without /Zc:__cplusplus, __cplusplus is that of C++98 */
#if _MSVC_LANG < 201703L
#error "allstop.hpp needs C++17 or later: compile with /std:c++17"
#endif
#elif __cplusplus < 201703L
#error "allstop.hpp needs C++17 or later: compile with -std=c++17"
#endif

#include <exception>

namespace allstop {
namespace view {

// what(), which a class of the program's own may make null.
inline const char* TextOf(const std::exception& caught) noexcept {
  const char* const text = caught.what();
  return text != nullptr ? text : "an exception whose what() is null";
}

}  // namespace view
}  // namespace allstop

#endif  // ALLSTOP_ALLSTOP_CPP17_HPP_
