{
  "target_defaults": {
    "sources": ["addon.cc"],
    "include_dirs": [
      "<!(node -p \"require('allstop/include')\")",
      "<!(node -p \"require('node-addon-api').include_dir\")"
    ],
    "defines": ["NAPI_VERSION=8"],
    "cflags_cc": ["-std=c++17"],
    "conditions": [["OS=='linux'", { "libraries": ["-ldl"] }]]
  },
  "targets": [
    { "target_name": "compiler", "cflags_cc!": ["-fno-exceptions", "-fno-rtti"] },
    {
      "target_name": "all",
      "defines": ["NODE_ADDON_API_CPP_EXCEPTIONS_ALL"],
      "cflags_cc!": ["-fno-exceptions", "-fno-rtti"]
    },
    {
      "target_name": "present",
      "defines": ["NODE_ADDON_API_CPP_EXCEPTIONS"],
      "cflags_cc!": ["-fno-exceptions", "-fno-rtti"]
    },
    {
      "target_name": "former",
      "defines": ["NAPI_CPP_EXCEPTIONS"],
      "cflags_cc!": ["-fno-exceptions", "-fno-rtti"]
    },
    { "target_name": "disabled", "defines": ["NODE_ADDON_API_DISABLE_CPP_EXCEPTIONS"] }
  ]
}
