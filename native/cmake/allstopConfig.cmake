# For find_package(allstop) in the package, and for add_subdirectory of the package. What
# `cmake --install` installs has a file of its own (install.cmake). `npx allstop cmake` prints the folder of this file, so a project
# finds it like this:
#
#   find_program(NPX NAMES npx.cmd npx REQUIRED) # Windows finds it by its full name only
#   execute_process(COMMAND ${NPX} allstop cmake
#     WORKING_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR} # or npx runs where cmake was started
#     OUTPUT_VARIABLE allstop_DIR OUTPUT_STRIP_TRAILING_WHITESPACE)
#   find_package(allstop CONFIG REQUIRED)
#
# allstop::headers  the headers, for a Node addon: it gets its handles from JavaScript, so
#                   it links no library
# allstop::allstop  the core as a static library, for a C++17 program without JavaScript;
#                   compiled in that program's build, which gets ALLSTOP_LINKED defined. A
#                   project without the language CXX does not get this target
get_filename_component(_allstop_native "${CMAKE_CURRENT_LIST_DIR}/.." ABSOLUTE)

if(NOT TARGET allstop::headers)
  add_library(allstop_headers INTERFACE)
  target_include_directories(allstop_headers SYSTEM INTERFACE "${_allstop_native}/include")
  add_library(allstop::headers ALIAS allstop_headers)
endif()

# A target with C++ sources would end the generation of a project whose only language is C.
get_property(_allstop_languages GLOBAL PROPERTY ENABLED_LANGUAGES)
if(NOT TARGET allstop::allstop AND CXX IN_LIST _allstop_languages)
  include("${CMAKE_CURRENT_LIST_DIR}/sources.cmake")
  list(TRANSFORM ALLSTOP_CORE_SOURCES PREPEND "${_allstop_native}/")
  if(NOT TARGET Threads::Threads)
    find_package(Threads REQUIRED)
    # The targets here are known to the whole project, so what they link has to be, too.
    set_target_properties(Threads::Threads PROPERTIES IMPORTED_GLOBAL TRUE)
  endif()
  # Not built unless it is linked.
  add_library(allstop_library STATIC EXCLUDE_FROM_ALL ${ALLSTOP_CORE_SOURCES})
  set_target_properties(allstop_library PROPERTIES
    OUTPUT_NAME allstop
    CXX_STANDARD 17 CXX_STANDARD_REQUIRED ON
    CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON
    POSITION_INDEPENDENT_CODE ON)
  target_compile_definitions(allstop_library INTERFACE ALLSTOP_LINKED)
  target_link_libraries(allstop_library PUBLIC allstop_headers Threads::Threads ${CMAKE_DL_LIBS})
  add_library(allstop::allstop ALIAS allstop_library)
elseif(NOT TARGET allstop::allstop)
  message(STATUS "allstop: no target allstop::allstop, which is compiled from C++: for it, "
    "write LANGUAGES C CXX in project(). The target allstop::headers needs no C++")
endif()
