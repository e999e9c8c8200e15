// The scripts of Megatron's tools/openwebtext under their own names and with their flags.
#pragma once

#include "apps/common/command.h"

namespace bloomery {

int blacklist_urls(const Arguments& arguments, std::ostream& out);
int cleanup_dataset(const Arguments& arguments, std::ostream& out);
int cleanup_fix_dataset(const Arguments& arguments, std::ostream& out);
int find_duplicates(const Arguments& arguments, std::ostream& out);
int group_duplicate_url(const Arguments& arguments, std::ostream& out);
int remove_group_duplicates(const Arguments& arguments, std::ostream& out);
int filter_ngrams(const Arguments& arguments, std::ostream& out);
int add_id(const Arguments& arguments, std::ostream& out);
int merge_jsons(const Arguments& arguments, std::ostream& out);

}  // namespace bloomery
