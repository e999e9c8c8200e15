// Layouts in few letters, as `bloomery parity` reads and prints them: tp2 tensor ranks, sp with
// sequence parallelism, ul2 ranks that divide sequences, pp2 pipeline stages, v2 chunks per stage,
// gpipe or zb their schedule, dp2 data-parallel ranks, z1 the stage of ZeRO. In any order, with or
// without +, - or . between them: "tp2sp+pp2zb+dp2z1". "1" is one rank.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "comm/layout.h"

namespace bloomery {

Layout parse_layout(std::string_view text);
std::vector<Layout> parse_layouts(std::string_view text);  // separated by commas or spaces
std::string to_text(const Layout& layout);

}  // namespace bloomery
