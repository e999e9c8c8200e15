#include <lzma.h>

#include "base/error.h"
#include "text/input/decompress.h"

namespace bloomery {
namespace {

// xz -9 needs 65 MiB; what needs more than this was made with a dictionary of special size.
constexpr std::uint64_t kMemoryLimit = std::uint64_t{256} << 20;

class Unxz : public ByteSource {
 public:
  explicit Unxz(std::unique_ptr<CompressedInput> from) : from_(std::move(from)) {
    check(lzma_stream_decoder(&stream_, kMemoryLimit, LZMA_CONCATENATED) == LZMA_OK,
          "liblzma does not start");
  }
  ~Unxz() override { lzma_end(&stream_); }
  Unxz(const Unxz&) = delete;
  Unxz& operator=(const Unxz&) = delete;

  std::size_t read(std::span<char> to) override {
    stream_.next_out = reinterpret_cast<std::uint8_t*>(to.data());
    stream_.avail_out = to.size();
    while (!ended_ && stream_.avail_out == to.size()) {
      const std::string_view in = from_->available();
      stream_.next_in = reinterpret_cast<const std::uint8_t*>(in.data());
      stream_.avail_in = in.size();
      const lzma_ret result = lzma_code(&stream_, in.empty() ? LZMA_FINISH : LZMA_RUN);
      from_->consume(in.size() - stream_.avail_in);
      ended_ = result == LZMA_STREAM_END;
      check_result(result);
    }
    return to.size() - stream_.avail_out;
  }

 private:
  void check_result(lzma_ret result) const {
    check(result != LZMA_BUF_ERROR, from_->name(), ": the xz data is cut off");
    check(result != LZMA_MEMLIMIT_ERROR, from_->name(), ": unpacking needs more than ",
          kMemoryLimit >> 20, " MiB; compress it with a smaller dictionary");
    check(result == LZMA_OK || result == LZMA_STREAM_END, from_->name(),
          ": the xz data is damaged or of an unknown kind (liblzma code ", static_cast<int>(result),
          ")");
  }

  std::unique_ptr<CompressedInput> from_;
  lzma_stream stream_ = LZMA_STREAM_INIT;
  bool ended_ = false;
};

}  // namespace

std::unique_ptr<ByteSource> unxz(std::unique_ptr<CompressedInput> from) {
  return std::make_unique<Unxz>(std::move(from));
}

}  // namespace bloomery
