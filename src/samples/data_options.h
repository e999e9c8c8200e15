// Options of the data, with Megatron's names.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "samples/split.h"

namespace bloomery {

class OptionTable;

enum class DataFormat { infer, mmap, cached, lazy };
enum class LoaderType { single, cyclic };

struct DataOptions {
  std::vector<std::string> data_path;  // one prefix, or weight prefix weight prefix ...
  std::vector<std::string> train_data_path, valid_data_path, test_data_path;
  std::string split = "969, 30, 1";
  std::int64_t seq_length = 0;
  std::string data_cache_path;
  DataFormat data_impl = DataFormat::infer;
  LoaderType dataloader_type = LoaderType::single;
  bool no_data_sharding = false;  // of the cyclic order
  int num_workers = 2;
  bool reset_position_ids = false, reset_attention_mask = false, eod_mask_loss = false;
  std::optional<std::int64_t> train_data_exact_num_epochs;
  bool allow_tokenizer_mismatch = false;

  // The words that name the data of a split; empty: none.
  const std::vector<std::string>& paths(Split split) const;
  bool has_separate_paths() const;
};

void describe(OptionTable& table, DataOptions& options);
// Those of them that say which samples there are, without those of loading.
void describe_corpora(OptionTable& table, DataOptions& options);
// Rules across options: what is contradictory or missing.
std::vector<std::string> problems(const DataOptions& options);

}  // namespace bloomery
