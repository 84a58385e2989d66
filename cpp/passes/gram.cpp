#include "gram.hpp"

#include "panels.hpp"

namespace certifit {
GramSums gram(const Rows& rows, const double* y, const double* weight, const Cells& cells, const Scaling& scaling,
              size_t block_rows, bool twofold, Crew& crew) {
  const SquareLayout layout(rows, y != nullptr);
  const size_t stride = layout.stride, cell_size = layout.size(), n_thin = layout.n_thin;
  const size_t n_blocks = (rows.n_rows + block_rows - 1) / block_rows;
  SumTree<BlockSums> tree(n_blocks);

  crew.for_each_block(n_blocks, [&](size_t block) {
    const size_t begin = block * block_rows, end = std::min(begin + block_rows, rows.n_rows);
    BlockSums sums;
    sums.hi.assign(cells.count * cell_size, 0.0);
    if (twofold) sums.lo.assign(cells.count * cell_size, 0.0);
    Panels panels(layout.n_packed);
    Packer packer(rows, y, scaling);
    std::vector<double> roots;
    Entries entries(rows, scaling, layout.first_thin);
    ByCell by_cell;
    // A whole number of tiles, so that one cell of all rows is tiled as the block is.
    const size_t chunk = 32 * panels.capacity;
    for (size_t i = begin; i < end; i += chunk) {
      packer.open(i, std::min(i + chunk, end));
      by_cell.sort(cells, i, std::min(i + chunk, end));
      for (size_t c = 0, at = 0; c < cells.count; ++c) {
        for (const size_t last = by_cell.starts[c + 1]; at < last;) {
          if (!crew.keep_going()) return;
          const size_t count = std::min(panels.capacity, last - at);
          const std::span<const size_t> tile(&by_cell.rows[at], count);
          roots.resize(count);
          for (size_t k = 0; k < count; ++k)
            roots[k] = weight ? std::sqrt(weight[tile[k]] * scaling.weight_scale) : 1.0;
          packer.pack(tile, roots, panels);
          at += count;
          const bool is_last = at == by_cell.rows.size();
          const size_t next = is_last ? std::min(i + chunk, end) : by_cell.rows[at];
          add_tile(panels, count, sums, c * cell_size, stride, Ahead(rows, next, panels.capacity));
          if (n_thin == 0) continue;
          for (size_t k = 0; k < count; ++k) entries.add(tile[k], roots[k], panels, k, sums, c * cell_size, stride);
        }
      }
    }
    tree.add(block, std::move(sums));
  });

  GramSums out;
  out.hi = layout.unfolded(tree.root().hi, cells.count, n_blocks > 0);
  if (twofold) out.lo = layout.unfolded(tree.root().lo, cells.count, n_blocks > 0);
  return out;
}

}  // namespace certifit
