# A block and so many rows in one expression, each with a part that is the same along the columns: a statement of its own
# for all of them would leave one that reads more tiles than it may.
blockbuster 1
program parts
dim M

input X : f32[M,41]
input R0 : f32[M,1]
input R1 : f32[M,1]
input R2 : f32[M,1]
input R3 : f32[M,1]
input R4 : f32[M,1]
input R5 : f32[M,1]
input R6 : f32[M,1]
input R7 : f32[M,1]
input R8 : f32[M,1]
input R9 : f32[M,1]
input R10 : f32[M,1]
output Y = elementwise (X-R0)*tanh(R0)+(X-R1)*tanh(R1)+(X-R2)*tanh(R2)+(X-R3)*tanh(R3)+(X-R4)*tanh(R4)+(X-R5)*tanh(R5)+(X-R6)*tanh(R6)+(X-R7)*tanh(R7)+(X-R8)*tanh(R8)+(X-R9)*tanh(R9)+(X-R10)*tanh(R10)
