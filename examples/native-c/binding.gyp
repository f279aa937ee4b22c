{
  "targets": [
    {
      "target_name": "reader",
      "sources": ["reader.c"],
      # The folder of the headers, as `npx allstop include` prints it.
      "include_dirs": ["<!(node -p \"require('allstop/include')\")"],
      "defines": ["NAPI_VERSION=8"],
      "cflags": ["-Wall", "-Wextra", "-Wpedantic", "-fvisibility=hidden"],
      "cflags_c": ["-std=c11"],
      "conditions": [["OS=='linux'", { "libraries": ["-ldl"] }]]
    }
  ]
}
