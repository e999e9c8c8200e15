// A checkpoint open for reading, under whatever layout the reader has: ask for any box of any
// tensor, and the bytes come from the pieces that it meets.
#pragma once

#include <cstddef>
#include <exception>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/thread_pool.h"
#include "checkpoint/hashed_file.h"
#include "checkpoint/manifest.h"

namespace bloomery {

class CheckpointReader {
 public:
  // Reads the manifest and looks at every file: an Error when a manifest is missing or damaged, or
  // when a file is absent or has another size. Blocks are checked when they are read, or all at
  // once by verify(). Errors of the storage are std::system_error (stored_file.h), here and later.
  explicit CheckpointReader(const std::filesystem::path& folder,
                            const OpenBytes& open = open_input_file);
  // A checkpoint that another program wrote, described as one of ours; a file for each of the
  // manifest's.
  CheckpointReader(std::filesystem::path folder, Manifest manifest,
                   std::vector<std::unique_ptr<CheckedFile>> files);

  const std::filesystem::path& folder() const { return folder_; }
  const Manifest& manifest() const { return manifest_; }
  const RunState& state() const { return manifest_.state; }
  std::vector<std::string> names() const;
  bool contains(const std::string& name) const { return manifest_.tensors.contains(name); }
  const ManifestTensor& tensor(const std::string& name) const;  // throws when there is none

  // Copies one box, row-major, to host memory of exactly its size. By any thread.
  void read(const std::string& name, const Box& box, std::span<std::byte> to) const;

  // Many boxes at once, divided among the threads of the pool.
  struct Request {
    std::string name;
    Box box;
    std::span<std::byte> to;
  };
  void read(const std::vector<Request>& requests, ThreadPool& pool) const;

  // Reads a whole file of the manifest, checked.
  std::string read_file(const std::string& name) const;
  // Reads the files that hold no tensors, checked.
  void check_small_files() const;

  // Checks every block of every file; throws the first problem, an error of the storage before any
  // damage. Later reads need no check.
  void verify(ThreadPool& pool) const;
  // The same, and that the files are safetensors with the tensors where the manifest has them, and
  // that nothing else is in the folder. What is wrong, one line each.
  std::vector<std::string> problems(ThreadPool& pool) const;

 private:
  void read_piece(const ManifestTensor& tensor, const ManifestPiece& piece, const Box& wanted,
                  std::span<std::byte> to) const;
  std::vector<std::exception_ptr> block_problems(ThreadPool& pool) const;
  std::vector<std::string> content_problems() const;

  std::filesystem::path folder_;
  Manifest manifest_;
  std::vector<std::unique_ptr<CheckedFile>> files_;
};

}  // namespace bloomery
