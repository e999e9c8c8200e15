#include <algorithm>
#include <mutex>

#include "config/nearest.h"
#include "models/families.h"

namespace bloomery {
namespace {

// Values that never change once they are in the list; it grows before ranks start, in programs with
// a family of their own.
struct Registry {
  std::mutex mutex;
  std::vector<const Family*> families = {&gpt_family(),     &llama_family(),     &qwen2_family(),
                                         &neox_family(),    &mistral_family(),   &qwen3_family(),
                                         &gemma_family(),   &bert_family(),      &t5_family(),
                                         &mixtral_family(), &qwen2_moe_family(), &ict_family()};
};

Registry& registry() {
  static Registry all;
  return all;
}

}  // namespace

std::vector<const Family*> families() {
  const std::lock_guard lock(registry().mutex);
  return registry().families;
}

ModelOptions as_family(ModelOptions stored, const ModelOptions& here) {
  stored.family = here.family;
  stored.extra = here.extra;
  stored.segments.binary_head = here.segments.binary_head;
  stored.head_activation = here.head_activation;
  stored.task = here.task;
  stored.vocabulary.untied = here.vocabulary.untied;
  return stored;
}

const Family& find_family(std::string_view name) {
  std::vector<std::string> names;
  for (const Family* family : families()) {
    if (family->name == name) {
      return *family;
    }
    names.emplace_back(family->name);
  }
  throw Error(concat("there is no model family '", name, "'", suggestion(name, names)));
}

void add_family(const Family& family) {
  const std::lock_guard lock(registry().mutex);
  std::vector<const Family*>& known = registry().families;
  const bool is_new =
      std::ranges::none_of(known, [&](const Family* other) { return other->name == family.name; });
  check(is_new, "there already is a model family ", family.name);
  known.push_back(&family);
}

}  // namespace bloomery
