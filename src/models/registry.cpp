#include <algorithm>
#include <iterator>
#include <mutex>

#include "config/nearest.h"
#include "models/family.h"

namespace bloomery {

// A file each; llama_families.cpp has a row for each of its own.
const Family& gpt_family();
std::vector<const Family*> llama_families();
const Family& neox_family();
const Family& bert_family();
const Family& t5_family();
const Family& ict_family();

namespace {

// The families that the program comes with, in the order of help; the first is the default.
std::vector<const Family*> built_in() {
  std::vector<const Family*> all = {&gpt_family()};
  std::ranges::copy(llama_families(), std::back_inserter(all));
  all.insert(all.end(), {&neox_family(), &bert_family(), &t5_family(), &ict_family()});
  return all;
}

// Values that never change once they are in the list; it grows before ranks start, in programs with
// a family of their own.
struct Registry {
  std::mutex mutex;
  std::vector<const Family*> families = built_in();
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

const Family& family_with(FamilyHead head) {
  const std::vector<const Family*> all = families();
  const auto found =
      std::ranges::find_if(all, [&](const Family* family) { return family->head == head; });
  check(found != all.end(), "no model family has such a head");
  return **found;
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
