// Pages of help: fitted to the terminal, and through a pager where they are longer than it.
#pragma once

#include <cstddef>
#include <functional>
#include <ostream>
#include <string>

namespace bloomery {

// The columns of the terminal that `out` is; elsewhere lines have no limit.
std::size_t output_columns(const std::ostream& out);

// Writes page(columns) to `out`. Where that is the standard output and a terminal, lines are as
// wide as it, up to 100 columns, and a page that is higher goes through $PAGER (less, where it is
// not set; none, where it is empty). Elsewhere lines have 80 columns.
void show_page(std::ostream& out, const std::function<std::string(std::size_t columns)>& page);

}  // namespace bloomery
