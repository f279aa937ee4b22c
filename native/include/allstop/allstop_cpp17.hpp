/// @file allstop_cpp17.hpp
/// Says in one line what is wrong if the C++ headers are compiled as an older C++ than they need.
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

#endif  // ALLSTOP_ALLSTOP_CPP17_HPP_
