// bloomery_encode_records: records of instruction data (files) to token ids and what is learnt of
// them, for tests/long/finetune.py and dpo.py. Each line of the output is {"ids": [...],
// "loss_mask":
// [...]}; with --dpo a record has two, chosen and rejected.
#include "samples/instruct/encode_records.h"

#include <iostream>
#include <nlohmann/json.hpp>

#include "base/temporary_folder.h"
#include "config/option_table.h"
#include "tokenizer/load.h"

int main(int count, char** words) {
  using namespace bloomery;
  std::string tokenizer_path;
  std::vector<std::string> files;
  InstructOptions options;
  OptionTable table;
  table.add("tokenizer", tokenizer_path, "Folder.").required();
  table.add("data-path", files, "Files.").required();
  describe(table, options);
  try {
    table.read_flags({words + 1, words + count});
    table.finish();
    const auto tokenizer = load_tokenizer({.path = tokenizer_path});
    const RecordTemplate how = choose_template(options, tokenizer_path);
    const TemporaryFolder cache;
    const auto records = encoded_records({options, how, *tokenizer}, files, cache.path(), Log());
    records->for_each(0, records->size(), [](std::int64_t, auto ids, auto loss_mask) {
      std::cout << nlohmann::json{{"ids", std::vector(ids.begin(), ids.end())},
                                  {"loss_mask", std::vector(loss_mask.begin(), loss_mask.end())}}
                       .dump()
                << '\n';
    });
  } catch (const Error& error) {
    std::cerr << error.what() << '\n';
    return 2;
  }
}
