# What `cmake --install` installs: the headers, the core as a static library, and the files by which
# find_package(allstop) and pkg-config find them. Included by CMakeLists.txt of the package.
include(CMakePackageConfigHelpers)
include(GNUInstallDirs)

set_target_properties(allstop_core PROPERTIES OUTPUT_NAME allstop EXPORT_NAME allstop)
target_include_directories(allstop_core
  PUBLIC $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
target_compile_definitions(allstop_core INTERFACE $<INSTALL_INTERFACE:ALLSTOP_LINKED>)
add_library(allstop_installed_headers INTERFACE)
set_target_properties(allstop_installed_headers PROPERTIES EXPORT_NAME headers)
target_include_directories(allstop_installed_headers
  INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)

set(_allstop_cmake ${CMAKE_INSTALL_LIBDIR}/cmake/allstop)
install(DIRECTORY native/include/allstop DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(TARGETS allstop_core allstop_installed_headers EXPORT allstop
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(EXPORT allstop NAMESPACE allstop:: FILE allstopTargets.cmake DESTINATION ${_allstop_cmake})
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/allstopConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
# A program of C needs the C++ library, which its linker does not add.
set(_allstop_cxx_library stdc++)
if(APPLE)
  set(_allstop_cxx_library c++)
elseif(MSVC)
  set(_allstop_cxx_library) # the objects name it
endif()
file(WRITE ${CMAKE_CURRENT_BINARY_DIR}/allstopConfig.cmake
  "include(CMakeFindDependencyMacro)\nfind_dependency(Threads)\n"
  "include(\${CMAKE_CURRENT_LIST_DIR}/allstopTargets.cmake)\n"
  "get_property(_allstop_languages GLOBAL PROPERTY ENABLED_LANGUAGES)\n"
  "if(NOT CXX IN_LIST _allstop_languages)\n"
  "  set_property(TARGET allstop::allstop APPEND PROPERTY\n"
  "    INTERFACE_LINK_LIBRARIES ${_allstop_cxx_library})\nendif()\n")
install(FILES
  ${CMAKE_CURRENT_BINARY_DIR}/allstopConfig.cmake
  ${CMAKE_CURRENT_BINARY_DIR}/allstopConfigVersion.cmake
  DESTINATION ${_allstop_cmake})

# The C++ library is in Libs.private: pkg-config --static.
file(RELATIVE_PATH _allstop_prefix
  "${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig" "${CMAKE_INSTALL_PREFIX}/.")
configure_file(native/cmake/allstop.pc.in allstop.pc @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/allstop.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
