// The contents of a stop record as std::strings, for comparisons in tests. A program reads
// records with allstop_record_read.
#ifndef ALLSTOP_TEST_NATIVE_LIBRARY_RECORD_H_
#define ALLSTOP_TEST_NATIVE_LIBRARY_RECORD_H_

#include <allstop/allstop.hpp>
#include <string>

namespace allstop::test {

struct Record {
  int kind = -1;  // -1: there is no record
  std::string name;
  std::string message;
  std::string native_type;
  std::string thread;
};

using ReadRecord = allstop_status (*)(const allstop_coordinator*, allstop_record**);

inline Record RecordOf(const Coordinator& coord, ReadRecord read = allstop_stop_record) {
  allstop_record* record = nullptr;
  read(coord.handle(), &record);
  if (record == nullptr) return {};
  allstop_record_info info = {};
  info.size = sizeof(info);
  allstop_record_read(coord.handle(), record, &info);
  const auto text = [](allstop_string string) {
    return string.data ? std::string(string.data, string.size) : std::string();
  };
  Record values = {info.kind, text(info.name), text(info.message), text(info.native_type),
                   text(info.thread_name)};
  allstop_record_release(coord.handle(), record);
  return values;
}

}  // namespace allstop::test

#endif  // ALLSTOP_TEST_NATIVE_LIBRARY_RECORD_H_
