// bloomery_encode_records: records of instruction data (files) to token ids and what is learnt of
// them, for tests/long/finetune.py and dpo.py. Each line of the output is {"ids": [...], "learnt":
// [...]}; with --dpo a record has two, chosen and rejected.
#include <iostream>
#include <nlohmann/json.hpp>

#include "config/option_table.h"
#include "samples/instruct/instruct_data.h"
#include "samples/instruct/record_files.h"
#include "tokenizer/load.h"

static void print(const bloomery::InstructExample& example) {
  std::cout << nlohmann::json{{"ids", example.ids}, {"learnt", example.learnt}}.dump() << '\n';
}

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
    ExampleMaker maker(options, *tokenizer, tokenizer_path);
    for (const RecordText& record : read_record_files(files)) {
      InstructExample example, rejected;
      const bool wanted = options.pairs ? maker.make(record.json, example, rejected)
                                        : maker.make(record.json, example);
      if (wanted) print(example);
      if (wanted && options.pairs) print(rejected);
    }
  } catch (const Error& error) {
    std::cerr << error.what() << '\n';
    return 2;
  }
}
