# The sources of the core and of its function table, relative to native/. They are compiled
# without Node's headers.
set(ALLSTOP_CORE_SOURCES
  core/bounded_queue.cc
  core/busy_workers.cc
  core/coordinator.cc
  core/coordinator_threads.cc
  core/coordinator_timeline.cc
  core/deadline.cc
  core/encoded_error.cc
  core/exit_report.cc
  core/exit_timer.cc
  core/identity.cc
  core/interruption.cc
  core/looper_thread.cc
  core/requester.cc
  core/standard_error.cc
  core/stop_record.cc
  core/stop_timer.cc
  core/thread_kick.cc
  core/thread_registry.cc
  core/timeline.cc
  core/unseen_errors.cc
  core/published_bytes.cc
  core/variables.cc
  abi/queue.cc
  abi/table.cc
  abi/variable.cc)
