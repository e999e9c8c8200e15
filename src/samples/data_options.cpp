#include "samples/data_options.h"

#include "config/option_table.h"

namespace bloomery {

const std::vector<std::string>& DataOptions::paths(Split split) const {
  if (!data_path.empty()) {
    return data_path;
  }
  return split == Split::train   ? train_data_path
         : split == Split::valid ? valid_data_path
                                 : test_data_path;
}

bool DataOptions::has_separate_paths() const { return data_path.empty(); }

void describe_corpora(OptionTable& t, DataOptions& o) {
  t.section("data");
  t.add("data-path", o.data_path,
        "Corpus prefix (without .bin and .idx), or a blend: weight prefix weight prefix ...");
  t.add("train-data-path", o.train_data_path, "Training corpora; --split does not apply.");
  t.add("valid-data-path", o.valid_data_path, "Validation corpora.");
  t.add("test-data-path", o.test_data_path, "Test corpora.");
  t.add("split", o.split, "Proportions of documents for training, validation and test.");
  OptionRow& length = t.add("seq-length", o.seq_length, "Sequence length in tokens.", at_least(1))
                          .alias("encoder-seq-length");
  if (o.seq_length == 0) {
    length.required();
  }
  t.add("data-cache-path", o.data_cache_path,
        "Folder for index files; none: index-cache beside the data.");
  t.add("data-impl", o.data_impl, "Format of the corpora; infer reads it from the file.",
        {{"infer", DataFormat::infer},
         {"mmap", DataFormat::mmap},
         {"cached", DataFormat::cached},
         {"lazy", DataFormat::lazy}});
  t.add("train-data-exact-num-epochs", o.train_data_exact_num_epochs,
        "Index exactly this many epochs of the training documents.", at_least(1));
  t.add("allow-tokenizer-mismatch", o.allow_tokenizer_mismatch,
        "Accept corpora whose note names another tokenizer than the run's.");
  t.ignore("mmap-warmup", "pages are read on demand");
}

void describe(OptionTable& t, DataOptions& o) {
  describe_corpora(t, o);
  t.section("data loading");
  t.add("dataloader-type", o.dataloader_type,
        "Sample order: single reads the index once; cyclic reshuffles each epoch.",
        {{"single", LoaderType::single}, {"cyclic", LoaderType::cyclic}});
  t.add("no-data-sharding", o.no_data_sharding,
        "Reshuffle all samples together instead of a fixed part per data-parallel rank.");
  t.add("num-workers", o.num_workers,
        "Threads that prepare batches; 0: none besides the training thread.", between(0, 1024));
  t.add("reset-position-ids", o.reset_position_ids, "Reset positions at each document.");
  t.add("reset-attention-mask", o.reset_attention_mask, "Mask attention between documents.");
  t.add("eod-mask-loss", o.eod_mask_loss, "Mask the loss after end-of-document tokens.");
}

std::vector<std::string> problems(const DataOptions& o) {
  std::vector<std::string> found;
  const bool separate =
      !o.train_data_path.empty() || !o.valid_data_path.empty() || !o.test_data_path.empty();
  if (!o.data_path.empty() && separate) {
    found.push_back(
        "--data-path and --train-data-path, --valid-data-path or --test-data-path exclude each "
        "other");
  }
  if (o.data_path.empty() && !separate) {
    found.push_back("no data: give --data-path PREFIX, or --train-data-path and --valid-data-path");
  }
  return found;
}

}  // namespace bloomery
