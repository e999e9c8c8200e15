#include <zstd.h>

#include "base/error.h"
#include "text/input/decompress.h"

namespace bloomery {
namespace {

class Unzstd : public ByteSource {
 public:
  explicit Unzstd(std::unique_ptr<CompressedInput> from)
      : from_(std::move(from)), stream_(ZSTD_createDStream()) {
    check(stream_ != nullptr, "libzstd does not start");
  }
  ~Unzstd() override { ZSTD_freeDStream(stream_); }
  Unzstd(const Unzstd&) = delete;
  Unzstd& operator=(const Unzstd&) = delete;

  // Frames follow one another; libzstd goes from one to the next by itself.
  std::size_t read(std::span<char> to) override {
    ZSTD_outBuffer out{to.data(), to.size(), 0};
    while (out.pos == 0) {
      const std::string_view bytes = from_->available();
      if (bytes.empty() && inside_frame_ && flushed_) {
        throw Error(concat(from_->name(), ": the zstd data is cut off"));
      }
      if (bytes.empty() && !inside_frame_) {
        break;
      }
      ZSTD_inBuffer in{bytes.data(), bytes.size(), 0};
      const std::size_t wanted = ZSTD_decompressStream(stream_, &out, &in);
      from_->consume(in.pos);
      check(ZSTD_isError(wanted) == 0, from_->name(), ": the zstd data is damaged, or needs a ",
            "window over 128 MiB: ", ZSTD_getErrorName(wanted));
      inside_frame_ = wanted != 0;
      flushed_ = out.pos < out.size;  // all that was decoded is out
    }
    return out.pos;
  }

 private:
  std::unique_ptr<CompressedInput> from_;
  ZSTD_DStream* stream_;
  bool inside_frame_ = false, flushed_ = true;
};

}  // namespace

std::unique_ptr<ByteSource> unzstd(std::unique_ptr<CompressedInput> from) {
  return std::make_unique<Unzstd>(std::move(from));
}

}  // namespace bloomery
