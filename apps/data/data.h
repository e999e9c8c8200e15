// `bloomery data`: one function per command.
#pragma once

#include <ostream>

#include "apps/common/command.h"

namespace bloomery {

int data(const Arguments& arguments, std::ostream& out);
int data_inspect(const Arguments& arguments, std::ostream& out);
int data_verify(const Arguments& arguments, std::ostream& out);
int data_merge(const Arguments& arguments, std::ostream& out);
int data_samples(const Arguments& arguments, std::ostream& out);
int data_split(const Arguments& arguments, std::ostream& out);
int data_clean(const Arguments& arguments, std::ostream& out);
int data_filter(const Arguments& arguments, std::ostream& out);
int data_decontaminate(const Arguments& arguments, std::ostream& out);
int data_extract_wiki(const Arguments& arguments, std::ostream& out);
int data_dedup(const Arguments& arguments, std::ostream& out);
int data_analyze(const Arguments& arguments, std::ostream& out);
int data_stories(const Arguments& arguments, std::ostream& out);

}  // namespace bloomery
