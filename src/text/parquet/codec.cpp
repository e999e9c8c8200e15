#include "text/parquet/codec.h"

#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "base/error.h"

namespace bloomery {
namespace {

void unzstd(ZSTD_DCtx* context, std::string_view from, std::span<char> to) {
  const std::size_t size =
      ZSTD_decompressDCtx(context, to.data(), to.size(), from.data(), from.size());
  check(ZSTD_isError(size) == 0, "its zstd data is damaged: ", ZSTD_getErrorName(size));
  check(size == to.size(), "it unpacks to ", size, " bytes and should have ", to.size());
}

// Members may follow one another.
void gunzip(z_stream& stream, std::string_view from, std::span<char> to) {
  check(inflateReset(&stream) == Z_OK, "zlib does not start again");
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(from.data()));
  stream.avail_in = static_cast<uInt>(from.size());
  stream.next_out = reinterpret_cast<Bytef*>(to.data());
  stream.avail_out = static_cast<uInt>(to.size());
  while (true) {
    const int result = inflate(&stream, Z_FINISH);
    check(result == Z_STREAM_END, "its gzip data is damaged or of another size",
          stream.msg != nullptr ? ": " : "", stream.msg != nullptr ? stream.msg : "");
    if (stream.avail_in == 0 || stream.avail_out == 0) break;
    check(inflateReset(&stream) == Z_OK, "zlib does not start again");
  }
  check(stream.avail_out == 0, "it unpacks to ", to.size() - stream.avail_out,
        " bytes and should have ", to.size());
}

}  // namespace

struct Unpacker::Contexts {
  ~Contexts() {
    ZSTD_freeDCtx(zstd);
    if (gzip_started) inflateEnd(&gzip);
  }

  ZSTD_DCtx* zstd = nullptr;
  z_stream gzip{};
  bool gzip_started = false;
};

Unpacker::Unpacker() : contexts_(std::make_unique<Contexts>()) {}
Unpacker::~Unpacker() = default;

void Unpacker::unpack(ParquetCodec codec, std::string_view from, std::span<char> to) {
  if (to.empty()) return;  // writers differ in whether nothing is compressed
  switch (codec) {
    case ParquetCodec::none:
      check(from.size() == to.size(), "it has ", from.size(), " bytes and should have ", to.size());
      std::ranges::copy(from, to.begin());
      return;
    case ParquetCodec::snappy:
      return unpack_snappy(from, to);
    case ParquetCodec::lz4_raw:
      return unpack_lz4(from, to);
    case ParquetCodec::gzip:
      if (!contexts_->gzip_started) {
        constexpr int kGzipOrZlib = 15 + 32;  // the largest window, either kind of header
        check(inflateInit2(&contexts_->gzip, kGzipOrZlib) == Z_OK, "zlib does not start");
        contexts_->gzip_started = true;
      }
      return gunzip(contexts_->gzip, from, to);
    case ParquetCodec::zstd:
      if (contexts_->zstd == nullptr) contexts_->zstd = ZSTD_createDCtx();
      check(contexts_->zstd != nullptr, "libzstd does not start");
      return unzstd(contexts_->zstd, from, to);
    case ParquetCodec::lzo:
    case ParquetCodec::brotli:
    case ParquetCodec::lz4_framed:
      break;
  }
  throw Error("a compression that is not read");
}

std::string_view unsupported_codec(std::int64_t codec) {
  switch (codec) {
    case 3:
      return "LZO";
    case 4:
      return "Brotli";
    case 5:
      return "LZ4 in Hadoop's frames";
    default:
      return codec < 0 || codec > 7 ? "an unknown method" : "";
  }
}

std::uint64_t most_unpacked(std::uint64_t packed_bytes) {
  constexpr std::uint64_t kAlways = 1 << 20, kMostRatio = 500;
  return kAlways + kMostRatio * packed_bytes;
}

}  // namespace bloomery
