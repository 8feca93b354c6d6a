"""The course: eight labs in ``notebooks/exercises``, the checks of their exercises, and the command that makes the copies.

``build``    ``./run_all.sh course --out DIR``: student copies, instructor's copies, slides
``grade``    ``./run_all.sh course --grade FOLDER --out marks.csv``: what the checks say of the labs that were handed in
``checks``   how an answer is compared, and what is said when it is not right yet
``figures``  ``show(figure, alt)``: every figure of a lab comes with a sentence for who does not see it
``lab1`` ...  the exercises of each lab: what is right, what goes wrong, where to look

The solved notebook is the source. Tags say what a cell is: ``stub`` (an exercise as a student finds it), ``solution``, ``check``,
``answer`` (to a question in prose) and ``instructor`` (notes for the teacher).
"""
