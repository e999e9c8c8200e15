#include "harness/shared_data.h"

#include <lzma.h>

#include <cstdlib>
#include <fstream>

#include "base/error.h"
#include "base/file.h"

namespace bloomery {
namespace {

std::filesystem::path repository_root() {
  const char* root = std::getenv("BLOOMERY_ROOT");
  check(root != nullptr, "BLOOMERY_ROOT is not set; run the tests with ctest, or set it");
  return root;
}

}  // namespace

std::optional<std::filesystem::path> shared_data(const std::string& name) {
  const std::filesystem::path path = repository_root() / ".." / "shared" / "data" / name;
  if (std::filesystem::exists(path)) return path;
  const char* required = std::getenv("BLOOMERY_REQUIRE_DATA");
  check(required == nullptr || std::string(required) != "1", path,
        " is not here, but BLOOMERY_REQUIRE_DATA=1 asks for every test");
  return std::nullopt;
}

std::string golden_file(const std::string& name) {
  return read_file(repository_root() / "tests" / "golden" / name);
}

std::string read_xz(const std::filesystem::path& path) {
  const std::string packed = read_file(path);
  lzma_stream stream = LZMA_STREAM_INIT;
  check(lzma_stream_decoder(&stream, UINT64_MAX, 0) == LZMA_OK, "no memory to unpack ", path);
  stream.next_in = reinterpret_cast<const std::uint8_t*>(packed.data());
  stream.avail_in = packed.size();
  std::string text;
  lzma_ret result = LZMA_OK;
  while (result == LZMA_OK) {
    const std::size_t done = text.size();
    text.resize(done + (std::size_t{1} << 20));
    stream.next_out = reinterpret_cast<std::uint8_t*>(text.data() + done);
    stream.avail_out = text.size() - done;
    result = lzma_code(&stream, LZMA_FINISH);
    text.resize(text.size() - stream.avail_out);
  }
  lzma_end(&stream);
  check(result == LZMA_STREAM_END, path, " is not a whole xz file");
  return text;
}

}  // namespace bloomery
