#include <zlib.h>

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "text/input/decompress.h"

namespace bloomery {
namespace {

class Gunzip : public ByteSource {
 public:
  explicit Gunzip(std::unique_ptr<CompressedInput> from) : from_(std::move(from)) {
    constexpr int kGzipWindow = 15 + 16;  // the largest window, gzip header and trailer
    check(inflateInit2(&stream_, kGzipWindow) == Z_OK, "zlib does not start");
  }
  ~Gunzip() override { inflateEnd(&stream_); }
  Gunzip(const Gunzip&) = delete;
  Gunzip& operator=(const Gunzip&) = delete;

  std::size_t read(std::span<char> to) override {
    while (!ended_) {
      if (between_members_ && !start_member()) {
        break;
      }
      const std::size_t count = inflate_some(to);
      if (count > 0) {
        return count;
      }
    }
    return 0;
  }

 private:
  // Another member, zero padding as tapes leave it, or the end.
  bool start_member() {
    std::string_view head = from_->look_ahead(2);
    while (!head.empty() && head[0] == '\0') {
      from_->consume(1);
      head = from_->look_ahead(2);
    }
    ended_ = head.empty();
    if (ended_) {
      return false;
    }
    check(head.starts_with("\x1F\x8B"), from_->name(),
          ": after the compressed data comes something that is not gzip");
    check(inflateReset(&stream_) == Z_OK, "zlib does not start again");
    between_members_ = false;
    return true;
  }

  std::size_t inflate_some(std::span<char> to) {
    const std::string_view in = from_->available();
    check(!in.empty(), from_->name(), ": the gzip data is cut off");
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(in.data()));
    stream_.avail_in = static_cast<uInt>(in.size());
    stream_.next_out = reinterpret_cast<Bytef*>(to.data());
    const auto room = static_cast<uInt>(std::min<std::size_t>(to.size(), 1 << 30));
    stream_.avail_out = room;
    const int result = inflate(&stream_, Z_NO_FLUSH);
    from_->consume(in.size() - stream_.avail_in);
    between_members_ = result == Z_STREAM_END;
    check(result == Z_OK || result == Z_STREAM_END || result == Z_BUF_ERROR, from_->name(),
          ": the gzip data is damaged", stream_.msg != nullptr ? ": " : "",
          stream_.msg != nullptr ? stream_.msg : "");
    return room - stream_.avail_out;
  }

  std::unique_ptr<CompressedInput> from_;
  z_stream stream_{};
  bool between_members_ = false, ended_ = false;
};

}  // namespace

std::unique_ptr<ByteSource> gunzip(std::unique_ptr<CompressedInput> from) {
  return std::make_unique<Gunzip>(std::move(from));
}

}  // namespace bloomery
