{
  # For prebuildify, which builds the published binaries. CMakeLists.txt builds the same
  # sources for development; a test compares the two lists. This file is not published, since
  # npm would run node-gyp on every install.
  "targets": [
    {
      "target_name": "allstop",
      "sources": [
        "native/abi/queue.cc",
        "native/abi/table.cc",
        "native/abi/variable.cc",
        "native/binding/addon.cc",
        "native/binding/convert.cc",
        "native/binding/doorbell.cc",
        "native/binding/environment.cc",
        "native/binding/native_attachment.cc",
        "native/binding/native_queue.cc",
        "native/binding/native_variables.cc",
        "native/binding/fork_frame.cc",
        "native/binding/fork_line.cc",
        "native/binding/fork_pipe_posix.cc",
        "native/binding/fork_pipe_windows.cc",
        "native/binding/parent_watch.cc",
        "native/binding/signals.cc",
        "native/binding/spawned_workers.cc",
        "native/binding/sqlite.cc",
        "native/core/alarm.cc",
        "native/core/background_thread.cc",
        "native/core/bounded_queue.cc",
        "native/core/busy_workers.cc",
        "native/core/coordinator.cc",
        "native/core/coordinator_threads.cc",
        "native/core/coordinator_timeline.cc",
        "native/core/deadline.cc",
        "native/core/encoded_error.cc",
        "native/core/errno_name.cc",
        "native/core/exit_report.cc",
        "native/core/exit_timer.cc",
        "native/core/identity.cc",
        "native/core/interruption.cc",
        "native/core/looper_thread.cc",
        "native/core/requester.cc",
        "native/core/standard_error.cc",
        "native/core/stop_record.cc",
        "native/core/stop_timer.cc",
        "native/core/thread_kick.cc",
        "native/core/thread_registry.cc",
        "native/core/timeline.cc",
        "native/core/unseen_errors.cc",
        "native/core/published_bytes.cc",
        "native/core/variables.cc"
      ],
      "include_dirs": ["<!(node -p \"require('node-addon-api').include_dir\")"],
      "defines": [
        "NAPI_VERSION=8",
        "NAPI_CPP_EXCEPTIONS",
        "NODE_API_SWALLOW_UNTHROWABLE_EXCEPTIONS"
      ],
      "cflags!": ["-fno-exceptions"],
      "cflags_cc!": ["-fno-exceptions", "-fno-rtti"],
      "cflags_cc": ["-std=c++17", "-fvisibility=hidden", "-fvisibility-inlines-hidden"],
      "conditions": [
        [
          "OS=='linux'",
          {
            "cflags_cc": ["-O2", "-ffunction-sections", "-fdata-sections"],
            "ldflags": [
              "-Wl,--gc-sections",
              "-static-libstdc++",
              "-static-libgcc",
              "-Wl,--version-script=<(module_root_dir)/native/binding/exports.map"
            ]
          }
        ],
        [
          "OS=='mac'",
          {
            "xcode_settings": {
              "GCC_ENABLE_CPP_EXCEPTIONS": "YES",
              "CLANG_CXX_LANGUAGE_STANDARD": "c++17",
              "CLANG_CXX_LIBRARY": "libc++",
              "GCC_SYMBOLS_PRIVATE_EXTERN": "YES",
              "MACOSX_DEPLOYMENT_TARGET": "11.0"
            }
          }
        ],
        [
          "OS=='win'",
          {
            "msvs_settings": {
              "VCCLCompilerTool": { "ExceptionHandling": 1, "AdditionalOptions": ["/std:c++17"] }
            }
          }
        ]
      ]
    }
  ]
}
