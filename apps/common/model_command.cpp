#include "apps/common/model_command.h"

namespace bloomery {

bool read_model_options(OptionTable& table, ModelStart& start, const Arguments& arguments,
                        std::ostream& out, const std::string& usage,
                        const std::function<std::vector<std::string>()>& problems) {
  describe(table, start.ranks);
  describe(table, start.model);
  ignore_training_flags(table, arguments);
  return read_options(table, arguments, out, usage, [&] {
    std::vector<std::string> found = contradictions(start.ranks);
    const std::vector<std::string> own = problems ? problems() : std::vector<std::string>();
    found.insert(found.end(), own.begin(), own.end());
    return found;
  });
}

}  // namespace bloomery
