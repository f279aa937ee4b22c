{
  "targets": [
    {
      "target_name": "reader",
      "sources": ["reader.c"],
      # A relative path, because gyp cannot handle an absolute path that contains a space.
      "include_dirs": ["<!(npx allstop include --relative)"],
      "defines": ["NAPI_VERSION=8"],
      "cflags": ["-Wall", "-Wextra", "-Wpedantic"],
      "cflags_c": ["-std=c11"],
      "conditions": [["OS=='linux'", { "libraries": ["-ldl"] }]]
    }
  ]
}
