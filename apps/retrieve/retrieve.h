// `bloomery retrieve`: vectors for many texts, and the texts whose vectors are nearest to a
// query's.
#pragma once

#include "apps/common/command.h"

namespace bloomery {

int retrieve(const Arguments& arguments, std::ostream& out);
int retrieve_index(const Arguments& arguments, std::ostream& out);
int retrieve_search(const Arguments& arguments, std::ostream& out);

}  // namespace bloomery
