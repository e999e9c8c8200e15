#include "retrieve/retriever_eval.h"

#include <algorithm>

#include "retrieve/answers.h"
#include "retrieve/tsv.h"

namespace bloomery {
namespace {

// The place of the first passage that has one of the answers; as many as there are: none.
std::size_t first_hit(const PassageIndex& index, const std::vector<Found>& found,
                      const Question& question) {
  std::vector<std::vector<std::string>> answers;
  for (const std::string& answer : question.answers) {
    answers.push_back(answer_words(answer));
  }
  std::size_t place = 0;
  while (place < found.size() && !has_answer(index.passage(found[place].passage).text, answers)) {
    ++place;
  }
  return place;
}

}  // namespace

std::vector<Question> read_questions(const std::string& path) {
  TsvReader reader(path);
  std::vector<Question> questions;
  std::vector<std::string> fields;
  while (reader.next(fields)) {
    check(fields.size() >= 2, reader.place(), " has ", fields.size(),
          " fields, but questions have two: the question, and a list of answers");
    questions.push_back({std::move(fields[0]), python_list(fields[1], reader.place())});
  }
  check(!questions.empty(), path, " has no questions");
  return questions;
}

RetrieverResult evaluate_retriever(TextVectors& vectors, const PassageIndex& index,
                                   const std::vector<Question>& questions,
                                   const RetrieverEvalOptions& options) {
  const auto total = std::ssize(questions);
  RetrieverResult result{.num_questions = total};
  result.hits.resize(static_cast<std::size_t>(std::min(options.topk, index.size())));
  for (std::ptrdiff_t first = 0; first < total; first += options.batch_size) {
    const std::ptrdiff_t end = std::min<std::ptrdiff_t>(total, first + options.batch_size);
    std::vector<std::vector<TokenId>> tokens;
    for (std::ptrdiff_t i = first; i < end; ++i) {
      tokens.push_back(vectors.query(questions[static_cast<std::size_t>(i)].text));
    }
    const auto found = index.search(vectors.stream(), vectors.queries(tokens), options.topk);
    for (std::size_t i = 0; i < found.size(); ++i) {
      const Question& question = questions[static_cast<std::size_t>(first) + i];
      for (std::size_t k = first_hit(index, found[i], question); k < result.hits.size(); ++k) {
        ++result.hits[k];
      }
    }
    options.progress(end, total);
  }
  return result;
}

}  // namespace bloomery
