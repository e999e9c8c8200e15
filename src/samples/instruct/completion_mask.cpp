#include "samples/instruct/completion_mask.h"

#include <algorithm>

namespace bloomery {
namespace {

std::vector<std::size_t> places(std::span<const TokenId> ids, std::span<const TokenId> wanted) {
  std::vector<std::size_t> found;
  if (wanted.empty()) return found;
  for (auto at = ids.begin();; ++at) {
    at = std::search(at, ids.end(), wanted.begin(), wanted.end());
    if (at == ids.end()) return found;
    found.push_back(static_cast<std::size_t>(at - ids.begin()));
  }
}

}  // namespace

std::vector<std::uint8_t> completion_mask(std::span<const TokenId> ids,
                                          std::span<const TokenId> response,
                                          std::span<const TokenId> instruction) {
  std::vector<std::uint8_t> loss_mask(ids.size(), 0);
  std::vector<std::size_t> answers = places(ids, response);
  for (std::size_t& place : answers) place += response.size();
  if (answers.empty()) return loss_mask;
  if (instruction.empty()) {
    std::fill(loss_mask.begin() + static_cast<std::ptrdiff_t>(answers.back()), loss_mask.end(), 1);
    return loss_mask;
  }
  std::vector<std::size_t> questions = places(ids, instruction);
  if (questions.empty()) return loss_mask;
  if (questions[0] > answers[0]) questions.insert(questions.begin(), 0);
  std::fill(loss_mask.begin(), loss_mask.end(), 1);
  const auto hide = [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) loss_mask[i] = 0;
  };
  for (std::size_t k = 0; k < std::min(questions.size(), answers.size()); ++k) {
    hide(k == 0 ? 0 : questions[k], answers[k]);
  }
  if (answers.size() < questions.size()) hide(questions.back(), ids.size());
  return loss_mask;
}

}  // namespace bloomery
