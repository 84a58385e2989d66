#include "row_losses.hpp"

#include "tile_losses.hpp"

namespace certifit {

RowLosses row_losses(Loss loss, double parameter, const ScoredRows& rows, Crew& crew) {
  const size_t n = rows.n_rows, n_blocks = (n + loss_block - 1) / loss_block;
  const auto fresh = [](size_t size) { return std::make_unique_for_overwrite<double[]>(size); };
  RowLosses out{fresh(rows.leaf ? n : 0), fresh(n), fresh(n), std::vector<double>(2 * n_blocks)};
  const AnyLoss loss_of = any_loss(loss, parameter);
  crew.for_each_block(n_blocks, [&](size_t block) {
    constexpr size_t tile_rows = 2048;  // stay near while they are read again
    const size_t end = std::min(n, (block + 1) * loss_block);
    LossSums sums;
    for (size_t first = block * loss_block; first < end; first += tile_rows) {
      const size_t count = std::min(tile_rows, end - first);
      const double* z = rows.z + first;
      if (rows.leaf) {
        for (size_t i = first; i < first + count; ++i) out.score[i] = rows.z[i] + rows.value[rows.leaf[i]];
        z = out.score.get() + first;
      }
      const LossSums tile = tile_losses(loss_of, count, rows.y + first, z, rows.weight + first,
                                        rows.is_trained ? rows.is_trained + first : nullptr, out.slope.get() + first,
                                        out.curvature.get() + first);
      sums.trained += tile.trained;
      sums.others += tile.others;
    }
    out.sums[2 * block] = sums.trained;
    out.sums[2 * block + 1] = sums.others;
  });
  return out;
}

}  // namespace certifit
