#include "apps/help/help.h"

#include <algorithm>

#include "apps/bloomery.h"
#include "apps/common/pager.h"
#include "apps/help/topics.h"
#include "config/option_table.h"

namespace bloomery {
namespace {

struct Topic {
  std::string name;
  std::string (*page)(std::size_t columns);
};

std::vector<Topic> topics() {
  return {{"compat", compat_page}, {"exit-codes", exit_codes_page}, {"sizes", sizes_page}};
}

}  // namespace

int help_command(const Arguments& arguments, std::ostream& out) {
  if (wants_help(arguments)) {
    out << "usage: bloomery help [COMMAND... | compat | exit-codes | sizes]\n\n"
           "Describes a command, as `bloomery COMMAND --help` does, or a topic.\n";
    return kFinished;
  }
  const std::vector<Topic> known = topics();
  const auto topic =
      std::ranges::find(known, arguments.size() == 1 ? arguments[0] : std::string(), &Topic::name);
  if (topic != known.end()) {
    show_page(out, topic->page);
    return kFinished;
  }
  Arguments asked = arguments;
  asked.emplace_back("--help");
  return dispatch_bloomery(asked, out);
}

}  // namespace bloomery
