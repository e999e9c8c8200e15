// bloomery_encode_tasks: samples of a task's files as a model reads them, for tests/long/tasks.py.
// Each line of the output has "tokens", "types", "lengths", "label" and "uid" of a sample.
#include <iostream>
#include <nlohmann/json.hpp>

#include "config/option_table.h"
#include "samples/tasks/task_data.h"
#include "tokenizer/load.h"

int main(int count, char** words) {
  using namespace bloomery;
  std::string vocabulary;
  TaskData::Options options;
  OptionTable table;
  table.add("vocab-file", vocabulary, "BERT's.").required();
  table.add("seq-length", options.length, "Tokens.").required();
  describe(table, options.task);
  try {
    table.read_flags({words + 1, words + count});
    table.finish();
    const auto tokenizer =
        load_tokenizer({.type = "BertWordPieceLowerCase", .vocab_file = vocabulary});
    const TaskData data(options, *tokenizer);
    for (const TaskData::Set& set : data.sets()) {
      const auto samples = data.of_set(set, 1);
      HostBatch batch(DeviceKind::cpu, samples->fields(), 1);
      for (std::int64_t k = 0; k < samples->size(); ++k) {
        samples->read(k, Sample(batch, 0));
        const auto ends = batch.array<std::int32_t>("key_end");
        std::vector<std::int32_t> lengths;
        for (std::size_t i = 0; i < ends.size(); i += static_cast<std::size_t>(options.length)) {
          lengths.push_back(ends[i]);
        }
        const TaskSample& sample = (*set.samples)[static_cast<std::size_t>(k)];
        std::cout << nlohmann::json{{"tokens", batch.array<std::int32_t>("tokens")},
                                    {"types", batch.array<std::int32_t>("token_types")},
                                    {"lengths", lengths},
                                    {"label", sample.label},
                                    {"uid", sample.uid}}
                         .dump()
                  << '\n';
      }
    }
  } catch (const Error& error) {
    std::cerr << error.what() << '\n';
    return 2;
  }
}
