# Compiles for clang's source-based coverage. scripts/coverage.mjs names this file in
# CMAKE_TOOLCHAIN_FILE (an environment variable since CMake 3.21), and the folder of the counters in
# ALLSTOP_PROFILES. Not by CXXFLAGS: cmake-js overrides those.
#   %c  the counters live in a file that is mapped into memory, so that a process that is killed
#       loses none; this needs -runtime-counter-relocation
#   %m  all the processes that run a binary share one file
set(CMAKE_C_COMPILER clang)
set(CMAKE_CXX_COMPILER clang++)
add_compile_options(-fprofile-instr-generate=$ENV{ALLSTOP_PROFILES}/%c%m.profraw -fcoverage-mapping
  -fprofile-update=atomic "SHELL:-mllvm -runtime-counter-relocation")
add_link_options(-fprofile-instr-generate=$ENV{ALLSTOP_PROFILES}/%c%m.profraw)
