// expect: this enum needs a fixed underlying type: write `enum class`
#include <sluice/schema.hpp>

enum Color { red, green };
struct In {
  Color color;
};
auto schema = sluice::schema_of<In>();
