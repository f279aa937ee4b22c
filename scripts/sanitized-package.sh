# Sourced by the scripts that run Node with the addon under a sanitizer, from the root of the project.

# sanitized_package SANITIZER: makes build-sanitized/SANITIZER, a copy of the package whose addon, and
# whose test addon, are compiled under that sanitizer. Sets for the caller:
#   folder   where the copy is; a script in its test/ that imports `allstop` gets this build
#   library  what Node must preload
#   wrapper  words to put before the command, if any
# Returns 1 if it does not compile, and prints why. Needs `npm run compile:ts` first.
sanitized_package() {
  local sanitizer=$1
  folder=$PWD/build-sanitized/$sanitizer
  wrapper=()
  mkdir -p "$folder/test/lifecycle"
  if ! {
    npx cmake-js compile -O "$folder/build-cmake" --CDALLSTOP_ADDON=ON --CDALLSTOP_SANITIZER="$sanitizer" &&
      npx cmake-js compile -d test/addons/test-addon -O "$folder/test/addons/test-addon/build" --CDALLSTOP_SANITIZER="$sanitizer"
  } >"$folder/build.log" 2>&1; then
    cat "$folder/build.log"
    return 1
  fi
  # A copy of the package, in which the scripts import this build as `allstop`.
  cp package.json "$folder/"
  rm -rf "$folder/dist" "$folder/test/lifecycle/scripts"
  cp -r dist "$folder/"
  cp -r test/lifecycle/scripts "$folder/test/lifecycle/"

  case $sanitizer in
    address)
      library=$(gcc -print-file-name=libasan.so)
      export ASAN_OPTIONS=detect_leaks=1:exitcode=0
      ;;
    thread)
      library=$(gcc -print-file-name=libtsan.so)
      export TSAN_OPTIONS=exitcode=0:ignore_noninstrumented_modules=1:report_signal_unsafe=0
      # ThreadSanitizer aborts at start if the kernel randomizes addresses over a wide range.
      setarch "$(uname -m)" -R true 2>/dev/null && wrapper=(setarch "$(uname -m)" -R)
      ;;
    *) echo "unknown sanitizer: $sanitizer (address, thread)" >&2; exit 2 ;;
  esac
}
