// The one file that compiles fmt (header-only here). Everywhere else fmt/core.h, which is quick to
// read, declares what is defined here, so that a program needs no shared libfmt.
#include <fmt/format.h>

namespace bloomery {

// An inline function is emitted where its address is taken.
[[gnu::used]] static std::string (*const kEmitted)(fmt::string_view,
                                                   fmt::format_args) = fmt::vformat;

}  // namespace bloomery
