// How often a retriever finds a passage with the answer, as Megatron's tasks ICT-ZEROSHOT-NQ and
// RETRIEVER-EVAL count it.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "retrieve/passage_index.h"

namespace bloomery {

struct Question {
  std::string text;
  std::vector<std::string> answers;
};
// Rows of a question and a list of answers as Python prints one: those of NQ-open. An Error names
// the row that is none.
std::vector<Question> read_questions(const std::string& path);

struct RetrieverResult {
  std::int64_t num_questions = 0;
  std::vector<std::int64_t> hits;  // [k]: questions whose answer is in the first k + 1 passages
  double accuracy(std::size_t k) const {
    return static_cast<double>(hits.at(k)) / static_cast<double>(num_questions);
  }
};

struct RetrieverEvalOptions {
  std::int64_t topk = 100;  // passages that are looked at
  std::int64_t batch_size = 128;
  std::function<void(std::int64_t done, std::int64_t total)> progress = [](auto, auto) {};
};
RetrieverResult evaluate_retriever(TextVectors& vectors, const PassageIndex& index,
                                   const std::vector<Question>& questions,
                                   const RetrieverEvalOptions& options);

}  // namespace bloomery
