{
  "targets": [
    {
      "target_name": "reader",
      "sources": ["reader.c"],
      # Relative, as gyp cannot take an absolute path that holds a space.
      "include_dirs": ["<!(npx allstop include --relative)"],
      "defines": ["NAPI_VERSION=8"],
      "cflags": ["-Wall", "-Wextra", "-Wpedantic"],
      "cflags_c": ["-std=c11"],
      "conditions": [["OS=='linux'", { "libraries": ["-ldl"] }]]
    }
  ]
}
