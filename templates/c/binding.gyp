{
  "targets": [
    {
      "target_name": "addon",
      "sources": ["addon.c"],
      "include_dirs": ["<!(node -p \"require('allstop/include')\")"],
      "defines": ["NAPI_VERSION=8"],
      "cflags": ["-fvisibility=hidden"],
      "cflags_c": ["-std=gnu11"],
      "xcode_settings": { "GCC_SYMBOLS_PRIVATE_EXTERN": "YES" }
    }
  ]
}
