#include <algorithm>

#include "base/error.h"
#include "checkpoint/megatron/foreign_write.h"

namespace bloomery {
namespace {

using Rule = std::span<const MegatronTensor>::iterator;

std::string with(std::string_view pattern, char mark, std::int64_t number) {
  const std::size_t place = pattern.find(mark);
  return place == pattern.npos
             ? std::string(pattern)
             : concat(pattern.substr(0, place), number, pattern.substr(place + 1));
}

bool of_expert(const MegatronTensor& rule) { return rule.theirs.find('*') != rule.theirs.npos; }

// What stands before the layer's number; empty: it is of no layer.
std::string_view stack_of(const MegatronTensor& rule) {
  const std::size_t place = rule.theirs.find('#');
  return place == rule.theirs.npos ? std::string_view() : rule.theirs.substr(0, place);
}

}  // namespace

int MegatronExporter::first_stage(int stack) const {
  return stack == 0 || layout_.pipeline == 1 ? 0 : layout_.pipeline / 2;
}

int MegatronExporter::end_stage(int stack) const {
  return stack + 1 == num_stacks() || layout_.pipeline == 1 ? layout_.pipeline : first_stage(1);
}

int MegatronExporter::num_stacks() const {
  return Model::decoder_begin(record().model) > 0 ? 2 : 1;
}

std::vector<std::string> MegatronExporter::names(int stage) const {
  std::vector<std::string> result;
  const auto add = [&](Rule begin, Rule end, std::int64_t layer, std::int64_t expert = 0) {
    for (Rule rule = begin; rule != end; ++rule) {
      std::string name = with(with(rule->theirs, '#', layer), '*', expert);
      if (names_.find(name) != nullptr) {
        result.push_back(std::move(name));
      }
    }
  };
  const auto add_layer = [&](Rule begin, Rule end, std::int64_t layer) {
    while (begin != end) {
      if (!of_expert(*begin)) {
        add(begin, begin + 1, layer);
        ++begin;
        continue;
      }
      // All tensors of an expert come before those of the next.
      const Rule next = std::find_if_not(begin, end, of_expert);
      for (std::int64_t expert = 0; expert < record().model.moe.experts_of(layer); ++expert) {
        add(begin, next, layer, expert);
      }
      begin = next;
    }
  };
  const auto rules = find_family(record().model.family).megatron.tensors;
  int stack = -1;
  for (Rule begin = rules.begin(); begin != rules.end();) {
    const Rule end = std::find_if(begin, rules.end(), [&](const MegatronTensor& rule) {
      return stack_of(rule) != stack_of(*begin);
    });
    if (stack_of(*begin).empty()) {  // in front of the first stack, or behind one
      if (stage == (stack < 0 ? 0 : end_stage(stack) - 1)) {
        add(begin, end, 0);
      }
    } else {
      ++stack;
      std::int64_t layers = 0;
      while (names_.find(with(begin->theirs, '#', layers)) != nullptr) {
        ++layers;
      }
      const int first = first_stage(stack), stages = end_stage(stack) - first;
      check(layers % stages == 0, "--pipeline ", layout_.pipeline, ": ", layers,
            " layers cannot be divided by ", stages, " stages");
      for (std::int64_t layer = (stage - first) * layers / stages;
           stage >= first && stage < first + stages &&
           layer < (stage - first + 1) * layers / stages;
           ++layer) {
        add_layer(begin, end, layer);
      }
    }
    begin = end;
  }
  return result;
}

}  // namespace bloomery
