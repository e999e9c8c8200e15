#include "train/report/event_file.h"

#include <unistd.h>

#include <bit>
#include <utility>

#include "base/error.h"
#include "base/temporary_name.h"
#include "train/report/crc32c.h"

namespace bloomery {
namespace {

template <class Integer>
void append_little_endian(std::string& to, Integer value) {
  for (std::size_t byte = 0; byte < sizeof value; ++byte) {
    to.push_back(static_cast<char>(value >> (8 * byte) & 0xff));
  }
}

// A protobuf message being written, field by field.
class Message {
 public:
  Message& number(int field, std::uint64_t value) {
    key(field, 0);
    varint(value);
    return *this;
  }
  Message& real64(int field, double value) {
    key(field, 1);
    append_little_endian(bytes_, std::bit_cast<std::uint64_t>(value));
    return *this;
  }
  Message& bytes(int field, std::string_view value) {
    key(field, 2);
    varint(value.size());
    bytes_ += value;
    return *this;
  }
  Message& message(int field, const Message& value) { return bytes(field, value.bytes_); }
  Message& real32(int field, float value) {
    key(field, 5);
    append_little_endian(bytes_, std::bit_cast<std::uint32_t>(value));
    return *this;
  }
  Message& raw(std::string_view fields) {
    bytes_ += fields;
    return *this;
  }
  const std::string& text() const { return bytes_; }

 private:
  void key(int field, unsigned type) { varint(static_cast<std::uint64_t>(field) << 3 | type); }
  void varint(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_.push_back(static_cast<char>(value | 0x80));
    bytes_.push_back(static_cast<char>(value));
  }

  std::string bytes_;
};

// Numbers of the fields, by message.
namespace event {
constexpr int wall_time = 1, step = 2, file_version = 3, summary = 5;
}
constexpr int kSummaryValue = 1;
namespace value {
constexpr int tag = 1, simple_value = 2, tensor = 8, metadata = 9;
}
namespace tensor {
constexpr int dtype = 1, shape = 2, string_val = 8;
constexpr std::uint64_t string_type = 7;
}  // namespace tensor

// The first name that is free; others of the same second and process get a higher number.
std::filesystem::path free_name(const std::filesystem::path& folder, double now) {
  for (int number = 0;; ++number) {
    auto path = folder / concat("events.out.tfevents.", static_cast<std::int64_t>(now), ".",
                                machine_name(), ".", getpid(), ".", number);
    if (!std::filesystem::exists(path)) return path;
  }
}

std::string event_record(double now, std::int64_t step, const Message& fields) {
  Message message;
  message.real64(event::wall_time, now);
  if (step != 0) message.number(event::step, static_cast<std::uint64_t>(step));
  return tf_record(message.raw(fields.text()).text());
}

std::string summary_of(const Message& entry) {
  return Message().message(event::summary, Message().message(kSummaryValue, entry)).text();
}

}  // namespace

std::string tf_record(std::string_view payload) {
  std::string record;
  append_little_endian(record, static_cast<std::uint64_t>(payload.size()));
  append_little_endian(record, masked_crc32c(record));
  record += payload;
  append_little_endian(record, masked_crc32c(payload));
  return record;
}

EventFile::EventFile(const std::filesystem::path& folder, double now, Warn warn)
    : file_({.name = [folder, now] { return free_name(folder, now); },
             .header = event_record(now, 0, Message().bytes(event::file_version, "brain.Event:2")),
             .warn = std::move(warn)}) {
  std::error_code failed;  // the file will say it
  std::filesystem::create_directories(folder, failed);
  flush();
}

void EventFile::add_scalar(std::string_view tag, double value, std::int64_t step, double now) {
  Message entry;
  entry.bytes(value::tag, tag).real32(value::simple_value, static_cast<float>(value));
  add_event(now, step, summary_of(entry));
}

void EventFile::add_text(std::string_view tag, std::string_view text, std::int64_t step,
                         double now) {
  const Message one_dimension = Message().message(2, Message().number(1, 1));
  const Message plugin = Message().message(1, Message().bytes(1, "text"));
  Message entry;
  entry.bytes(value::tag, concat(tag, "/text_summary"))
      .message(value::tensor, Message()
                                  .number(tensor::dtype, tensor::string_type)
                                  .message(tensor::shape, one_dimension)
                                  .bytes(tensor::string_val, text))
      .message(value::metadata, plugin);
  add_event(now, step, summary_of(entry));
}

void EventFile::add_event(double now, std::int64_t step, std::string_view fields) {
  file_.add(event_record(now, step, Message().raw(fields)));
}

}  // namespace bloomery
