// What the tests of checkpoints share: a folder that goes away, and tensors with known values that
// any number of ranks hold under several layouts.
#pragma once

#include <unistd.h>

#include <atomic>
#include <cstring>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "checkpoint/boxes.h"
#include "checkpoint/folder.h"
#include "checkpoint/writer.h"

namespace bloomery {

// In memory where the system has such a folder: tests that save often would wait for the disk.
class TestFolder {
 public:
  enum class Where { memory, disk };
  explicit TestFolder(Where where = Where::memory) {
    const std::filesystem::path memory = "/dev/shm";
    const bool use_memory = where == Where::memory && access(memory.c_str(), W_OK) == 0;
    const auto parent = use_memory ? memory : std::filesystem::temp_directory_path();
    static std::atomic<int> count = 0;
    path_ = parent / concat("bloomery_checkpoint_test_", getpid(), "_", count++);
    std::filesystem::remove_all(path_);
    std::filesystem::create_directories(path_);
  }
  ~TestFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TestFolder(const TestFolder&) = delete;
  TestFolder& operator=(const TestFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

struct TestTensor {
  DType dtype;
  Shape shape;
};

inline const std::map<std::string, TestTensor>& test_tensors() {
  static const std::map<std::string, TestTensor> tensors = {
      {"embedding/value", {DType::bf16, {52, 16}}},
      {"embedding/master", {DType::fp32, {52, 16}}},
      {"qkv/exp_avg", {DType::fp32, {3, 4, 8, 12}}},
      {"norm/value", {DType::fp16, {24}}},
      {"counter", {DType::int64, {}}},
      {"flags", {DType::uint8, {4, 5, 7}}},
      {"empty", {DType::fp32, {0, 4}}},
  };
  return tensors;
}

// The bytes of a whole tensor; every step and name has others.
inline std::vector<std::byte> test_bytes(const std::string& name, std::int64_t step) {
  const TestTensor& tensor = test_tensors().at(name);
  std::vector<std::byte> bytes(static_cast<std::size_t>(tensor.shape.numel()) *
                               size_of(tensor.dtype));
  std::uint64_t state = std::hash<std::string>()(name) + static_cast<std::uint64_t>(step) * 7919;
  for (std::byte& byte : bytes) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    byte = static_cast<std::byte>(state >> 56);
  }
  return bytes;
}

// The part of a whole tensor that a box is.
inline std::vector<std::byte> part_of(const std::vector<std::byte>& whole, const Box& box,
                                      std::size_t size) {
  std::vector<std::byte> part(static_cast<std::size_t>(box.extent.numel()) * size);
  for (std::int64_t i = 0; i < box.extent.numel(); ++i) {
    std::memcpy(part.data() + static_cast<std::size_t>(i) * size,
                whole.data() + static_cast<std::size_t>(box.global_index(i)) * size, size);
  }
  return part;
}

inline void add_piece(Snapshot& snapshot, const std::string& name, const Box& box) {
  const TestTensor& tensor = test_tensors().at(name);
  const auto data = std::make_shared<std::vector<std::byte>>(
      part_of(test_bytes(name, snapshot.state.step), box, size_of(tensor.dtype)));
  snapshot.pieces.push_back(
      {.tensor = name, .dtype = tensor.dtype, .box = box, .data = data->data(), .owner = data});
}

inline RunState test_state(std::int64_t step) {
  return {.step = step,
          .consumed_samples = step * 16,
          .loss_scale = {.scale = 65536.25, .clean_steps = 17, .tolerance_left = -1},
          .options = R"({"lr":0.0003,"num-layers":2,"save":"here"})",
          .data_indices = {{"train", "0123456789abcdef"}},
          .choices = "matmul 128x128: \"quoted\"\nsecond line",
          .extra = {{"skipped", "3"}}};
}

// Rank `rank` of `ranks` holds an equal flat range of every tensor, as ZeRO shards do.
inline Snapshot flat_snapshot(std::int64_t step, int rank = 0, int ranks = 1) {
  Snapshot snapshot{.state = test_state(step), .pieces = {}};
  for (const auto& [name, tensor] : test_tensors()) {
    const std::int64_t count = tensor.shape.numel();
    const std::int64_t begin = count * rank / ranks, end = count * (rank + 1) / ranks;
    for (const Box& box : boxes_of_range(Box::whole(tensor.shape), begin, end - begin)) {
      add_piece(snapshot, name, box);
    }
  }
  if (rank == 0) {
    add_piece(snapshot, "empty", Box::whole({0, 4}));
  }
  return snapshot;
}

// Rank `rank` of `ranks` holds a slice of the last dimension where that divides; else rank 0 all.
inline Snapshot column_snapshot(std::int64_t step, int rank, int ranks) {
  Snapshot snapshot{.state = test_state(step), .pieces = {}};
  for (const auto& [name, tensor] : test_tensors()) {
    const Box whole = Box::whole(tensor.shape);
    const int last = tensor.shape.rank() - 1;
    if (last >= 0 && tensor.shape[last] % ranks == 0) {
      add_piece(snapshot, name, whole.split(last, rank, ranks));
    } else if (rank == 0) {
      add_piece(snapshot, name, whole);
    }
  }
  return snapshot;
}

// Whether every tensor has the values of that step.
inline bool holds_step(const CheckpointReader& reader, std::int64_t step) {
  for (const auto& [name, tensor] : test_tensors()) {
    const std::vector<std::byte> expected = test_bytes(name, step);
    std::vector<std::byte> found(expected.size());
    reader.read(name, Box::whole(tensor.shape), found);
    if (found != expected) {
      return false;
    }
  }
  return reader.state() == test_state(step);
}

inline SaveOutcome save_step(const std::filesystem::path& folder, std::int64_t step,
                             const SaveOptions& options = {}) {
  CheckpointWriter writer(folder, single_rank_group(), options);
  writer.save(flat_snapshot(step));
  return *writer.finish();
}

}  // namespace bloomery
