#include "fork_frame.h"

namespace allstop::binding {
namespace {

void PutNumber(std::string& bytes, std::uint64_t number, int size) {
  for (int i = 0; i < size; ++i) bytes.push_back(static_cast<char>((number >> (8 * i)) & 0xff));
}

void PutText(std::string& bytes, const std::string& text) {
  PutNumber(bytes, text.size(), 4);
  bytes += text;
}

struct Reader {
  std::string_view rest;
  bool is_whole = true;

  std::uint64_t Number(std::size_t size) {
    if (rest.size() < size) {
      is_whole = false;
      return 0;
    }
    std::uint64_t number = 0;
    for (std::size_t i = 0; i < size; ++i) {
      number |= std::uint64_t{static_cast<unsigned char>(rest[i])} << (8 * i);
    }
    rest.remove_prefix(size);
    return number;
  }

  std::string Text() {
    const std::uint64_t size = Number(4);
    if (rest.size() < size) {
      is_whole = false;
      return {};
    }
    std::string text(rest.substr(0, size));
    rest.remove_prefix(size);
    return text;
  }
};

}  // namespace

std::string ForkFrame::Encode() const {
  std::string body;
  PutNumber(body, static_cast<std::uint64_t>(kind), 1);
  PutNumber(body, static_cast<std::uint64_t>(requester.language), 1);
  PutNumber(body, static_cast<std::uint64_t>(requester.via), 1);
  PutNumber(body, requester.thread_id, 8);
  PutNumber(body, static_cast<std::uint64_t>(requester.pid), 8);
  PutNumber(body, static_cast<std::uint64_t>(requester.at_ms), 8);
  PutText(body, id);
  PutText(body, requester.thread_name);
  PutText(body, requester.stack);
  PutText(body, requester.signal);
  PutText(body, error ? error->bytes() : std::string());
  std::string frame;
  PutText(frame, body);
  return frame;
}

std::optional<ForkFrame> ForkFrame::Decode(std::string_view bytes) {
  Reader reader{bytes};
  ForkFrame frame;
  const std::uint64_t kind = reader.Number(1);
  const std::uint64_t language = reader.Number(1);
  const std::uint64_t via = reader.Number(1);
  if (!reader.is_whole) return std::nullopt;
  if (kind >= static_cast<std::uint64_t>(Kind::kUnknown)) {
    frame.kind = Kind::kUnknown;
    return frame;
  }
  frame.kind = static_cast<Kind>(kind);
  if (language <= static_cast<std::uint64_t>(core::Language::kNative)) {
    frame.requester.language = static_cast<core::Language>(language);
  }
  if (via <= static_cast<std::uint64_t>(core::Via::kDefer)) {
    frame.requester.via = static_cast<core::Via>(via);
  }
  frame.requester.thread_id = reader.Number(8);
  frame.requester.pid = static_cast<std::int64_t>(reader.Number(8));
  frame.requester.at_ms = static_cast<std::int64_t>(reader.Number(8));
  frame.id = reader.Text();
  frame.requester.thread_name = reader.Text();
  frame.requester.stack = reader.Text();
  frame.requester.signal = reader.Text();
  std::string error = reader.Text();
  if (!reader.is_whole) return std::nullopt;
  if (!error.empty()) frame.error = core::EncodedError::Decode(std::move(error));
  return frame;
}

}  // namespace allstop::binding
