#include "apps/help/help.h"

#include "apps/bloomery.h"
#include "config/option_table.h"

namespace bloomery {

int help_command(const Arguments& arguments, std::ostream& out) {
  Arguments asked = arguments;
  if (wants_help(arguments)) {
    out << "usage: bloomery help [COMMAND]...\n\nThe same as `bloomery COMMAND --help`.\n";
    return kFinished;
  }
  asked.emplace_back("--help");
  return dispatch_bloomery(asked, out);
}

}  // namespace bloomery
