// Checkpoints that Megatron-DeepSpeed and DeepSpeed wrote, made by tools/golden/foreign.py.
#pragma once

#include <filesystem>
#include <fstream>
#include <string>

#include "base/file.h"
#include "checkpoint/pickle/zip_archive.h"
#include "harness/shared_data.h"

namespace bloomery {

// Unpacks one below `folder`; the checkpoint's own folder.
inline std::filesystem::path unpack_foreign(const std::string& name,
                                            const std::filesystem::path& folder) {
  const std::string packed = golden_file("foreign/" + name + ".zip");
  const MemoryBytes bytes(std::as_bytes(std::span(packed)), name);
  const ZipArchive archive(bytes);
  std::filesystem::path checkpoint;
  for (const auto& [file, entry] : archive.entries()) {
    const std::vector<std::byte> contents = archive.contents(file);
    const std::filesystem::path path = folder / name / file;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary)
        .write(reinterpret_cast<const char*>(contents.data()),
               static_cast<std::streamsize>(contents.size()));
    checkpoint = folder / name / *std::filesystem::path(file).begin();
  }
  return checkpoint;
}

}  // namespace bloomery
