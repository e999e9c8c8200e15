// The tasks ICT-ZEROSHOT-NQ and RETRIEVER-EVAL: is the answer in the passages that are found?
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "apps/common/model_choice.h"
#include "apps/retrieve/index_choice.h"

namespace bloomery {

struct RetrieverTask {
  IndexChoice index;
  std::string dev, test;  // files of questions
  std::string match = "string";
  std::int64_t topk = 100;
  std::vector<std::int64_t> report = {1, 5, 20, 100};
};
void describe(OptionTable& table, RetrieverTask& options);
std::vector<std::string> problems(const RetrieverTask& options);

// Makes the index where passages are named, else uses the one that is there. Prints Megatron's
// lines unless `quiet`.
nlohmann::ordered_json run_retriever_task(const RetrieverTask& options, LoadedModel& model,
                                          bool quiet, std::ostream& out);

}  // namespace bloomery
